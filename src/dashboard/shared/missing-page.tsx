import { MaybeError } from "./notice.tsx";
import { useTitle } from "./page-head.tsx";
import { ProblemError } from "../../client/problem-error.ts";

interface MissingPageProps {
  readonly error: unknown;
  /** What the page is of. */
  readonly noun: "job" | "batch";
  /** Where others of its kind are. */
  readonly list: string;
  readonly retry: () => unknown;
}

const unknownCodes: readonly string[] = ["not_found", "validation_failed"];

/** Why a page shows nothing: what it is of is gone, foreign, or cannot be loaded. */
export function MissingPage({ error, noun, list, retry }: MissingPageProps) {
  if (!isGone(error)) return <MaybeError error={error} retry={retry} />;
  return <GonePage noun={noun} list={list} />;
}

/** Whether there is nothing at the address: what the page shows of it is over. */
export function isGone(error: unknown): boolean {
  return error instanceof ProblemError && unknownCodes.includes(error.problem.code);
}

function GonePage({ noun, list }: Pick<MissingPageProps, "noun" | "list">) {
  useTitle(`No such ${noun}`);
  return (
    <div class="empty">
      <h1>No such {noun}</h1>
      <p class="soft">
        It was deleted, belongs to another project, or the address is mistyped. Whoever sent the
        link can say in which project it is.
      </p>
      <a class="button" href={list}>
        {noun === "job" ? "Open the jobs" : "Open the batches"}
      </a>
    </div>
  );
}
