import type { ButtonHTMLAttributes } from "react";

type Kind = "plain" | "main" | "danger" | "quiet";

const LOOKS: Record<Kind, string> = {
  plain: "border border-line-strong bg-panel hover:bg-raised",
  main: "border border-transparent bg-accent text-on-accent hover:brightness-110",
  danger: "border border-line-strong bg-panel text-failed hover:bg-failed-soft",
  quiet: "border border-transparent text-ink-soft hover:bg-raised hover:text-ink",
};

export const buttonLook = (kind: Kind = "plain") =>
  `inline-flex h-7 items-center gap-1.5 rounded-md px-2.5 text-sm font-medium whitespace-nowrap no-underline ` +
  `disabled:cursor-not-allowed disabled:opacity-50 ${LOOKS[kind]}`;

export function Button({
  kind = "plain",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind }) {
  return <button type="button" className={`${buttonLook(kind)} ${className}`} {...rest} />;
}
