interface ChoicesProps<Name extends string> {
  /** What is chosen, for screen readers. */
  readonly label: string;
  readonly names: readonly Name[];
  /** What the buttons say; by default the names. */
  readonly words?: Readonly<Record<Name, string>>;
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
}

/** A row of buttons, one of them pressed. */
export function Choices<Name extends string>(props: ChoicesProps<Name>) {
  const { label, names, words, chosen, onChoose } = props;
  return (
    <div class="choices" role="group" aria-label={label}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen}
          onClick={() => onChoose(name)}
        >
          {words?.[name] ?? name}
        </button>
      ))}
    </div>
  );
}
