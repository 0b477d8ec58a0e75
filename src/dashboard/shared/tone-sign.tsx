import { Icon, type IconName } from "./icon.tsx";

interface ToneSignProps {
  readonly tone: "bad" | "warn" | "calm";
  readonly icon: IconName;
  readonly words: string;
}

/** A few words with their sign. */
export function ToneSign({ tone, icon, words }: ToneSignProps) {
  return (
    <span class={`status ${tone}`}>
      <Icon name={icon} />
      {words}
    </span>
  );
}
