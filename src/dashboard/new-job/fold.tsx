import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { FieldMessages } from "../shared/field-errors.ts";

interface FoldProps {
  readonly title: string;
  /** What is set in its fields. */
  readonly summary: string;
  /** Its fields that may be refused, and what is wrong with those of the form. */
  readonly names: readonly string[];
  readonly messages: FieldMessages;
  readonly children: ComponentChildren;
}

/** Fields that few people change; it opens where one of them is refused. */
export function Fold({ title, summary, names, messages, children }: FoldProps) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const isRefused = names.some((name) => messages[name] !== undefined);
    if (isRefused && details.current !== null) details.current.open = true;
  }, [messages]);
  return (
    <details ref={details} class="more-fields">
      <summary>
        {title} <span class="dim">{summary}</span>
      </summary>
      {children}
    </details>
  );
}
