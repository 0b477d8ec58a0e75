/** Firefox draws nothing of an element above 17 million pixels, Chromium above 33 million. */
const tallestPx = 10_000_000;

interface ScrollScale {
  /** Of the element that scrolls. */
  readonly heightPx: number;
  /** Pixels of rows that pass for each that is scrolled. */
  readonly factor: number;
}

/** How a view scrolls through rows that together can be taller than an element may be. */
export function scaleScroll(rowsPx: number, viewPx: number): ScrollScale {
  if (rowsPx <= tallestPx) return { heightPx: rowsPx, factor: 1 };
  return { heightPx: tallestPx, factor: (rowsPx - viewPx) / (tallestPx - viewPx) };
}
