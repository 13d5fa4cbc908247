/** The figures of a comparison, written as `seatrial compare` writes them. */

import { fixed } from "@/parts/format";

export const MINUS = "−";

/** With a thousands separator and so many digits. */
export function grouped(value: number, digits: number): string {
  const [whole = "", rest] = fixed(Math.abs(value), digits).split(".");
  const sign = value < 0 && Number(`${whole}.${rest ?? 0}`) ? MINUS : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
}

export const tokens = (value: number) => grouped(value, 0);
export const seconds = (value: number) => `${grouped(value, 1)} s`;
export const dollars = (value: number) => `$${grouped(value, value === 0 || value >= 0.1 ? 2 : 4)}`;

/** Points of a score, with a sign. */
export function points(share: number): string {
  const written = grouped(share * 100, 1);
  return share > 0 && written !== "0.0" ? `+${written}` : written;
}

/** The ends of an interval, without a plus. */
export const pointsTo = (low: number, high: number) => `${grouped(low * 100, 1)} to ${grouped(high * 100, 1)}`;

export function signed(value: number, write: (value: number) => string): string {
  return `${value > 0 ? "+" : value < 0 ? MINUS : ""}${write(Math.abs(value))}`;
}

export function probability(p: number): string {
  if (p < 0.0001) return "< 0.0001";
  return fixed(p, p < 0.01 ? 4 : 2);
}
