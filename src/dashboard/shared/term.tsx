import type { ComponentChildren } from "preact";
import { type TermName, termTable } from "../../contract/jobs/terms.ts";

interface TermProps {
  readonly name: TermName;
  readonly children: ComponentChildren;
}

/** A word that says what it means when it is pointed at, and leads to the page of terms. */
export function Term({ name, children }: TermProps) {
  return (
    <a class="term" href={`/terms#${name}`} title={termTable[name].meaning}>
      {children}
    </a>
  );
}
