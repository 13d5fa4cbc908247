/** The look of everything that can be typed into or chosen from. */
export const FIELD = "h-7 rounded-md border border-line-strong bg-panel px-2 text-sm placeholder:text-ink-faint";
