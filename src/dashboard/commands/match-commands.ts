export interface Command {
  readonly id: string;
  readonly kind: "Page" | "Action" | "Job" | "Batch";
  readonly label: string;
  readonly detail: string;
  /** An address, or what is done. */
  readonly leadsTo: string | (() => unknown);
}

const shownCommands = 12;

/** Commands that have every word of a text, those that begin with it first. */
export function matchCommands(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands.filter(({ label, detail, kind }) => {
    const searched = `${label} ${detail} ${kind}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  const begins = ({ label }: Command) => label.toLowerCase().startsWith(words.join(" "));
  return [...found.filter(begins), ...found.filter((each) => !begins(each))].slice(
    0,
    shownCommands,
  );
}
