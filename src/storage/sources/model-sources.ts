import { ServiceError } from "../../contract/errors.ts";
import type { BucketAccess, SourceCredentials } from "../../contract/models/source-credentials.ts";
import type { LocatedSource } from "../../contract/worker-protocol/transfers.ts";
import { presignRequest } from "../s3/s3-client.ts";
import {
  createHubAgent,
  findCommit,
  type HubAccess,
  hubFileUrl,
  hubHeaders,
} from "./hub-repository.ts";
import { limitLookups } from "./limit-lookups.ts";
import { type HubSource, parseSource } from "./parse-source.ts";

const publicHub: HubAccess = { endpoint: "https://huggingface.co" };
const servers = {
  s3: { endpoint: "https://s3.amazonaws.com", region: "us-east-1" },
  gs: { endpoint: "https://storage.googleapis.com", region: "auto" },
} as const;
/** Workers ask again for each connection. */
const addressSeconds = 900;

/** Sources that need credentials of the service: `s3://`, `gs://` and `hf://`. */
export interface ModelSources extends AsyncDisposable {
  /**
   * The source as a job records it: of a repository, with the commit that its revision is now.
   * @throws ServiceError model_source_refused, model_not_found, model_fetch_failed, unavailable
   */
  pin(project: string, source: string): Promise<string>;
  /**
   * Where a worker reads a source now.
   * @throws ServiceError model_source_refused
   */
  locate(project: string, source: string): Promise<LocatedSource>;
}

export function createModelSources(credentials: SourceCredentials): ModelSources {
  const agent = createHubAgent();
  const limitLookup = limitLookups();
  return {
    async pin(project, source) {
      const parsed = parseSource(source);
      if (parsed.scheme !== "hf") {
        findBucketAccess(credentials, project, parsed);
        return source;
      }
      const access = findHubAccess(credentials, project, parsed);
      const { repository, revision, file } = parsed;
      const isCommit = /^[0-9a-f]{40}$/.test(revision);
      if (isCommit) return file === "" ? `hf://${repository}@${revision}/` : source;
      // Every repository of a language model has this file.
      const probe = { ...parsed, file: file === "" ? "config.json" : file };
      const commit = await limitLookup(project, () => findCommit(agent, access, probe));
      return `hf://${repository}@${commit}/${file}`;
    },

    async locate(project, source) {
      const parsed = parseSource(source);
      if (parsed.scheme === "hf") {
        const access = findHubAccess(credentials, project, parsed);
        const url = hubFileUrl(access, parsed);
        return { url, headers: hubHeaders(access), isTrusted: true };
      }
      const { scheme, key } = parsed;
      const { pathStyle: isPathStyle, ...access } = findBucketAccess(credentials, project, parsed);
      const { endpoint = servers[scheme].endpoint, region = servers[scheme].region } = access;
      const bucket = { ...access, endpoint, region, isPathStyle };
      const url = await presignRequest(bucket, { method: "GET", key, seconds: addressSeconds });
      return { url, headers: {}, isTrusted: true };
    },

    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

interface Scoped {
  readonly projects?: readonly string[] | undefined;
}

function mayUse(project: string, { projects }: Scoped): boolean {
  return projects === undefined || projects.includes(project);
}

function findBucketAccess(
  credentials: SourceCredentials,
  project: string,
  { scheme, bucket }: { readonly scheme: "s3" | "gs"; readonly bucket: string },
): BucketAccess {
  const access = credentials[scheme].find(
    (entry) => entry.bucket === bucket && mayUse(project, entry),
  );
  if (access !== undefined) return access;
  const reason = `the service has no credentials of project "${project}" for the bucket`;
  throw new ServiceError("model_source_refused", `"${scheme}://${bucket}": ${reason}`);
}

/** Without any entry for the repository's owner that of the public Hub. */
function findHubAccess(
  { hf }: SourceCredentials,
  project: string,
  { owner }: HubSource,
): HubAccess {
  const fits = (entry: (typeof hf)[number]) => entry.owner === undefined || entry.owner === owner;
  return hf.find((entry) => fits(entry) && mayUse(project, entry)) ?? publicHub;
}
