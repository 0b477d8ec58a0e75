import type { LogLine } from "../contract/jobs/log.ts";
import type { Reply, Route } from "../contract/routes/route.ts";
import type { RouteName, Routes } from "../contract/routes/routes.ts";
import type { JobStatus } from "../contract/jobs/status.ts";
import { limits } from "../contract/limits.ts";
import {
  followLogs,
  readChanges,
  type ReadChangesOptions,
  type ServiceChange,
} from "./follow-logs.ts";
import { type FailedAnswer, UnexpectedAnswerError } from "./problem-error.ts";
import { retryTransient } from "./retry.ts";
import {
  type CallInput,
  type CallOutput,
  type Connection,
  type EmptyRouteName,
  requireRoute,
  isRepeatable,
  type JsonRouteName,
  type PagedRouteName,
  sendRequest,
  type UntypedInput,
} from "./send-request.ts";

interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface RouteCaller<R extends RouteName = RouteName> {
  /** Calls an endpoint of the route table. Retries transient failures where that is safe. */
  call<N extends JsonRouteName & R>(
    name: N,
    input: CallInput<N>,
    options?: CallOptions,
  ): Promise<CallOutput<N>>;
  /** Calls an endpoint that lists in pages until the last one, the largest pages that it gives. */
  listPages<N extends PagedRouteName & R>(
    name: N,
    input: CallInput<N>,
    options?: CallOptions,
  ): AsyncGenerator<CallOutput<N>, void>;
  /** Calls an endpoint that answers with nothing, in the same way. */
  callEmpty<N extends EmptyRouteName & R>(
    name: N,
    input: CallInput<N>,
    options?: CallOptions,
  ): Promise<void>;
  followLogs(
    jobId: string,
    options?: CallOptions & { after?: number },
  ): AsyncGenerator<LogLine, JobStatus>;
  readChanges(options?: ReadChangesOptions): AsyncGenerator<ServiceChange>;
}

/** Calls endpoints, typed by the contract's route table, in Node and in browsers. */
export function createCaller<R extends Partial<Routes>>(
  connection: Connection<R>,
): RouteCaller<keyof R & RouteName> {
  const requestText = (name: RouteName, input: UntypedInput, signal: AbortSignal | undefined) => {
    const once = async () => {
      const { status, headers, body } = await sendRequest(name, input, { ...connection, signal });
      return { status, headers, text: await body.text() };
    };
    return isRepeatable(name, requireRoute(connection.routes, name), input)
      ? retryTransient(once, signal)
      : once();
  };
  const callJson = async <N extends JsonRouteName>(
    name: N,
    input: UntypedInput,
    signal: AbortSignal | undefined,
  ) => {
    const answer = await requestText(name, input, signal);
    return parseReply(name, requireRoute(connection.routes, name), answer);
  };
  return {
    call: (name, input, { signal } = {}) => callJson(name, toUntypedInput(input), signal),
    async *listPages(name, input, { signal } = {}) {
      const { query, ...rest } = toUntypedInput(input);
      for (let cursor: string | null | undefined; cursor !== null;) {
        const paged = { ...query, limit: limits.pageMax, cursor };
        const page = await callJson(name, { ...rest, query: paged }, signal);
        yield page;
        cursor = (page as CallOutput<PagedRouteName>).nextCursor;
      }
    },
    async callEmpty(name, input, { signal } = {}) {
      await requestText(name, toUntypedInput(input), signal);
    },
    followLogs: (jobId, following = {}) => followLogs(jobId, following, connection),
    readChanges: (reading = {}) => readChanges(reading, connection),
  };
}

/** Every input of a route consists of these parts. */
function toUntypedInput<N extends RouteName>(input: CallInput<N>): UntypedInput {
  return input as UntypedInput;
}

/**
 * Parses by the schema that gives the result its type.
 * @throws UnexpectedAnswerError for an answer that is not the route's, such as a page of a proxy
 */
function parseReply<N extends RouteName>(
  name: N,
  { method, path, replies }: Route,
  answer: FailedAnswer,
): CallOutput<N> {
  const reply = (replies as Readonly<Record<number, Reply>>)[answer.status];
  if (reply === undefined || !("json" in reply)) {
    throw new TypeError(`${name} has no JSON answer ${answer.status}`);
  }
  try {
    return reply.json.parse(JSON.parse(answer.text)) as CallOutput<N>;
  } catch (cause) {
    throw new UnexpectedAnswerError(`${method} ${path}`, answer, { cause });
  }
}
