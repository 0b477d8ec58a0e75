const tokens = [
  "surface",
  "sunken",
  "line",
  "control",
  "text",
  "text-3",
  "focus",
  "selected",
  "accent",
  "bad",
  "warn",
  "good",
  "work",
  "better",
  "wait",
] as const;

/** Colours as a canvas takes them, by the names of their tokens. */
export type Palette = Readonly<Record<(typeof tokens)[number], string>>;

/** Reads the tokens' present colours: those of a canvas know no variables. */
export function readPalette(): Palette {
  const probe = document.createElement("span");
  document.body.append(probe);
  const entries = tokens.map((token) => {
    probe.style.color = `var(--${token})`;
    return [token, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(entries) as Palette;
}

/** Calls when the colours change: the system's, or those that the person chose. */
export function watchColours(listener: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(listener);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  scheme.addEventListener("change", listener);
  return () => {
    chosen.disconnect();
    scheme.removeEventListener("change", listener);
  };
}

/** Whether a key was pressed in a text field, where it is not a shortcut. */
export function isTyping({ target }: KeyboardEvent): boolean {
  return target instanceof Element && target.matches("input, textarea, select");
}
