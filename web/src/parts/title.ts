/** The name of the page in the browser's tab: what it shows first, the program last. */

import { useEffect } from "react";

export function useTitle(...parts: (string | null | undefined)[]) {
  const title = [...parts.filter(Boolean), "Seatrial"].join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
