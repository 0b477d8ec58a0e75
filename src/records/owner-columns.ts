import type { Origin, Owner } from "../contract/people/principal.ts";

interface OwnerColumns {
  readonly repository_id: string | null;
  readonly commit_sha: string | null;
}

export function originColumns(origin: Origin | null = null): OwnerColumns {
  return { repository_id: origin?.repository ?? null, commit_sha: origin?.commit ?? null };
}

export function parseOwner({
  project,
  repository_id: repository,
  commit_sha: commit,
}: OwnerColumns & { readonly project: string }): Owner {
  const isFromWorkflow = repository !== null && commit !== null;
  return { project, origin: isFromWorkflow ? { repository, commit } : null };
}
