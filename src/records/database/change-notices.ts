import { z } from "zod";
import { changeKinds, type CommittedChanges, forEachKind } from "./changes.ts";

/** The server's channel on which replicas announce what they commit. */
export const noticeChannel = "mos_changes";

/** A notice has at most 8,000 bytes, and an id at most 63. */
const idsPerNotice = 100;

const ids = z.array(z.string()).default([]);
const notice = z.object({ replica: z.int(), ...forEachKind(() => ids) });

const noticeText = z
  .string()
  .transform((text, context) => {
    try {
      const document: unknown = JSON.parse(text);
      return document;
    } catch {
      context.addIssue("must be JSON");
      return z.NEVER;
    }
  })
  .pipe(notice);

/** Effects of another replica's transaction, or a part of them. */
interface Notice {
  readonly replica: number;
  readonly effects: CommittedChanges;
}

/** Texts that notify other replicas of a transaction. */
export function formatNotices(replica: number, effects: CommittedChanges): string[] {
  const entries = changeKinds.flatMap((kind) => Array.from(effects[kind], (id) => ({ kind, id })));
  const count = Math.ceil(entries.length / idsPerNotice);
  return Array.from({ length: count }, (_, i) => {
    const part = entries.slice(i * idsPerNotice, (i + 1) * idsPerNotice);
    const byKind = Object.groupBy(part, ({ kind }) => kind);
    const listed = forEachKind((kind) => byKind[kind]?.map(({ id }) => id));
    return JSON.stringify({ replica, ...listed });
  });
}

/** Undefined for any other text, such as somebody else's on the channel. */
export function parseNotice(text: string): Notice | undefined {
  const parsed = noticeText.safeParse(text);
  if (!parsed.success) return undefined;
  const { replica, ...effects } = parsed.data;
  return { replica, effects: forEachKind((kind) => new Set(effects[kind])) };
}
