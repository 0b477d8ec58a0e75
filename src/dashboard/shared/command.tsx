import { CopyButton } from "./copy-button.tsx";

interface CommandProps {
  readonly text: string;
  /** What it is, for screen readers. */
  readonly label: string;
}

/** A text to take elsewhere, such as a command, with a button that copies it. */
export function Command({ text, label }: CommandProps) {
  return (
    <div class="command">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} />
    </div>
  );
}
