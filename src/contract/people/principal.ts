import { z } from "zod";
import type { Scope } from "./token.ts";
import { reportRules } from "../batches/report-rules.ts";

/** Of github.com. */
export const publicIssuer = "https://token.actions.githubusercontent.com";

/** The run of a workflow that a token was given to, as its issuer says. */
export const workflow = z.object({
  /** The repository's number; after `ISSUER#` where its issuer is not github.com. */
  repositoryId: z.string().min(1),
  /** `owner/name`, which check runs are written by. */
  repository: z.string().min(1),
  /** The commit of the run: of a pull request GitHub's merge of it, not its head. */
  commit: z.string().min(1),
  event: z.string().min(1),
  /** Such as `refs/heads/main` or `refs/pull/7/merge`. */
  ref: z.string(),
  /** The branch that a pull request proposes to change; empty for other events. */
  baseRef: z.string().default(""),
  /** What the trust policy lets its check runs be; null where it may have none written. */
  report: reportRules.nullable(),
});
export type Workflow = z.infer<typeof workflow>;

/** Only numbers of other servers have a prefix: they may equal those of github.com. */
export function qualifyRepositoryId(issuer: string, number: string): string {
  return issuer === publicIssuer ? number : `${issuer}#${number}`;
}

/** Whose number a repository's id is, and the number. */
export function parseRepositoryId(id: string): {
  readonly issuer: string;
  readonly number: number;
} {
  const [, issuer = publicIssuer, number] = /^(?:(.+)#)?(\d+)$/.exec(id) ?? [];
  if (number === undefined) throw new Error(`"${id}" is not a repository's id`);
  return { issuer, number: Number(number) };
}

/** Who calls: everything that decides what the caller may do. */
export interface Principal {
  readonly project: string;
  /** Null where a person is signed in. */
  readonly tokenId: string | null;
  /** Who is signed in, or made the token; null for tokens that no person made. */
  readonly personId: string | null;
  readonly scopes: readonly Scope[];
  readonly expiresAt: string | null;
  /** Trust policy that the token was issued under; null for tokens of people and programs. */
  readonly policy: string | null;
  /** Null where no workflow's identity token was exchanged. */
  readonly workflow: Workflow | null;
}

/** Whose the things are that the caller creates. */
export function creationOwner({ project, workflow: run }: Principal): Owner {
  return { project, origin: run && { repository: run.repositoryId, commit: run.commit } };
}

/** The workflow that something comes from. */
export interface Origin {
  /** The repository's number, since names can change hands. */
  readonly repository: string;
  readonly commit: string;
}

/** Whose a thing is. */
export interface Ownership {
  readonly project: string;
  /** Whose it is within the project, where it is somebody's. */
  readonly personId?: string | null;
  /** Null where it comes from no workflow. */
  readonly origin: Partial<Origin> | null;
}

/** Whose a job or a batch is. */
export interface Owner extends Ownership {
  readonly origin: Origin | null;
}
