import { Button } from "./button.tsx";

interface ListFootProps {
  readonly count: number;
  /** What the entries are, in the plural. */
  readonly noun: string;
  readonly hasMore: boolean;
  readonly onMore: () => unknown;
}

/** The end of a list: how much of it is shown, and the way to the rest. */
export function ListFoot({ count, noun, hasMore, onMore }: ListFootProps) {
  return (
    <div class="foot">
      <span role="status">
        {count.toLocaleString("en")} {noun}
        {hasMore ? " shown" : ""}
      </span>
      <span class="grow" />
      {hasMore ? <Button onClick={onMore}>Show more</Button> : "Newest first"}
    </div>
  );
}
