import { signal } from "@preact/signals";
import { Icon } from "../shared/icon.tsx";

const yearSeconds = 31_536_000;
const themes = ["system", "light", "dark"] as const;

const theme = signal(themes.find((each) => each === document.documentElement.dataset["theme"]));

/** Chooses light, dark or what the system has. The service knows it by a cookie, before scripts. */
export function ThemeButton() {
  const current = theme.value ?? "system";
  const choose = () => {
    const next = themes[(themes.indexOf(current) + 1) % themes.length] ?? "system";
    const maxAge = next === "system" ? 0 : yearSeconds;
    document.cookie = `mos-theme=${next}; Path=/; SameSite=Strict; Max-Age=${maxAge}`;
    if (next === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = next;
    theme.value = next;
  };
  return (
    <button type="button" class="quiet" onClick={choose}>
      <Icon name="theme" />
      Colours: {current}
    </button>
  );
}
