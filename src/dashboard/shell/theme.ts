import { signal } from "@preact/signals";

const yearSeconds = 31_536_000;
export const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const started = themes.find((each) => each === document.documentElement.dataset["theme"]);

export const theme = signal<Theme>(started ?? "system");

/** Chooses light, dark or what the system has. The service knows it by a cookie, before scripts. */
export function chooseTheme(next: Theme): void {
  const maxAge = next === "system" ? 0 : yearSeconds;
  document.cookie = `mos-theme=${next}; Path=/; SameSite=Strict; Max-Age=${maxAge}`;
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  theme.value = next;
}
