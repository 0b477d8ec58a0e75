import type { StatusReason } from "../../../../src/contract/jobs/status-reasons.ts";

export type PascalCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Capitalize<Head>}${PascalCase<Tail>}`
  : Capitalize<Text>;

/** A status reason as conditions and events write it: `out_of_memory` is `OutOfMemory`. */
export function pascalCase<Reason extends StatusReason>(reason: Reason): PascalCase<Reason> {
  const words = reason.replaceAll(/(^|_)([a-z0-9])/g, (_match, _separator, letter: string) =>
    letter.toUpperCase(),
  );
  return words as PascalCase<Reason>;
}
