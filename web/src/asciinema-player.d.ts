declare module "asciinema-player" {
  export function create(source: unknown, place: HTMLElement, options?: Record<string, unknown>): unknown;
}
