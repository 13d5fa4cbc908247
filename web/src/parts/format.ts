/** Numbers and times as people read them: with their unit, and never more digits than they mean. */

/** As the service and the terminal round: half to even, where a browser would round half up. */
export function fixed(value: number, digits: number): string {
  const rounded = value.toFixed(digits);
  const [whole = "", rest = ""] = Math.abs(value)
    .toFixed(digits + 20)
    .split(".");
  const isHalf = /^50*$/.test(rest.slice(digits));
  const kept = digits ? `${whole}.${rest.slice(0, digits)}` : whole;
  return isHalf && Number(kept.at(-1)) % 2 === 0 ? `${value < 0 ? "-" : ""}${kept}` : rounded;
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value == null ? "–" : `${fixed(value * 100, digits)} %`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds == null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  const [large, small] = hours ? [`${hours} h`, minutes && `${minutes} m`] : [`${minutes} m`, rest && `${rest} s`];
  return small ? `${large} ${small}` : large;
}

export function count(value: number | null | undefined): string {
  if (value == null) return "–";
  if (value < 10_000) return value.toLocaleString("en");
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 100_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export function money(value: number | null | undefined): string {
  if (value == null) return "–";
  return value < 0.1 && value > 0 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

export function ago(moment: string | null | undefined, now: number = Date.now()): string {
  if (!moment) return "–";
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function exact(moment: string | null | undefined): string {
  return moment ? new Date(moment).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }) : "";
}

/** Who works on a trial, as one text. */
export function configuration({ agent, model }: { agent: string; model?: string | null }): string {
  return model ? `${agent} / ${model}` : agent;
}

/** `1 job`, `2 jobs`: names of lists are plurals that end in s. */
export function plural(number: number, names: string): string {
  return `${number.toLocaleString("en")} ${number === 1 ? names.replace(/s$/, "") : names}`;
}
