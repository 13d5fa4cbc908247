import { useState } from "react";

type Theme = "system" | "light" | "dark";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const NAMES: Record<Theme, string> = { system: "Auto", light: "Light", dark: "Dark" };

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem("seatrial.theme") as Theme | null) ?? "system");
  function change() {
    const next = NEXT[theme];
    setTheme(next);
    localStorage.setItem("seatrial.theme", next);
    const dark = next === "dark" || (next === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.classList.toggle("dark", dark);
  }
  return (
    <button
      type="button"
      onClick={change}
      title="Theme: system, light or dark"
      className="flex items-center gap-1.5 rounded-md px-2 py-1.5 text-xs text-ink-soft hover:bg-raised sm:flex-col sm:gap-0.5"
    >
      <svg viewBox="0 0 20 20" width="17" height="17" aria-hidden className="hidden sm:block">
        <circle cx="10" cy="10" r="6.5" fill="none" stroke="currentColor" strokeWidth="1.6" />
        <path d="M10 3.5a6.5 6.5 0 0 1 0 13z" fill="currentColor" />
      </svg>
      <span className="sr-only">Theme: </span>
      {NAMES[theme]}
    </button>
  );
}
