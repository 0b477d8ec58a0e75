import { Button } from "./button.tsx";

interface ListFootProps {
  readonly count: number;
  /** What an entry is, and what several are. */
  readonly nouns: readonly [string, string];
  readonly hasMore: boolean;
  readonly onMore: () => unknown;
}

/** The end of a list: how much of it is shown, and the way to the rest. */
export function ListFoot({ count, nouns: [one, many], hasMore, onMore }: ListFootProps) {
  return (
    <div class="foot">
      <span role="status">
        {count.toLocaleString("en")} {count === 1 ? one : many}
        {hasMore ? " shown" : ""}
      </span>
      <span class="grow" />
      {hasMore ? <Button onClick={onMore}>Show more</Button> : "Newest first"}
    </div>
  );
}
