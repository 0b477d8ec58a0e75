import type { ComponentChildren } from "preact";
import { type TermName, termTable } from "../../contract/jobs/terms.ts";

interface TermProps {
  /** Absent for a word that says what it means by itself. */
  readonly name: TermName | undefined;
  readonly children: ComponentChildren;
}

/** A word that says what it means when it is pointed at, and leads to the page of terms. */
export function Term({ name, children }: TermProps) {
  if (name === undefined) return <>{children}</>;
  return (
    <a class="term" href={`/terms#${name}`} title={termTable[name].meaning}>
      {children}
    </a>
  );
}
