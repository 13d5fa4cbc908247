import { useRouter } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";

/** A link in a row of a long list: as light as an anchor can be. The router's own are too much work a hundred times. */
export function RowLink({
  to,
  className = "",
  title,
  label,
  children,
}: {
  to: string;
  className?: string;
  title?: string;
  label?: string;
  children: ReactNode;
}) {
  const router = useRouter();
  function follow(event: MouseEvent) {
    event.stopPropagation();
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    void router.navigate({ to });
  }
  return (
    <a
      href={to}
      onClick={follow}
      className={`no-underline hover:underline ${className}`}
      title={title}
      aria-label={label}
    >
      {children}
    </a>
  );
}
