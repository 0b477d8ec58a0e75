import { Icon } from "../shared/icon.tsx";
import { chooseTheme, theme, themes } from "./theme.ts";

/** Goes on to the next choice of colours. */
export function ThemeButton() {
  const current = theme.value;
  const next = themes[(themes.indexOf(current) + 1) % themes.length] ?? "system";
  return (
    <button type="button" class="quiet" onClick={() => chooseTheme(next)}>
      <Icon name="theme" />
      Colours: {current}
    </button>
  );
}
