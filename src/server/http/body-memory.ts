import { ServerResponse } from "node:http";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { KeyedBudget } from "../../limits/keyed-budget.ts";

interface MemoryBounds {
  readonly all: number;
  readonly perCaller: number;
}

const retrySeconds = 1;

/** Memory for the body of a request, or of an answer. */
export interface HeldMemory extends Disposable {
  /** @throws ServiceError unavailable where there is no room */
  readonly take: (bytes: number) => void;
  /** Takes also where there is no room: what was done has to be answered. */
  readonly takeAnyway: (bytes: number) => void;
}

interface ExchangeMemory {
  readonly request: HeldMemory;
  readonly answer: HeldMemory;
}

/** Memory for bodies, of each kind of callers: none uses up another's. */
export interface BodyMemory {
  readonly ofProject: (id: string) => ExchangeMemory;
  /** Without a token. */
  readonly ofStranger: (address: string) => ExchangeMemory;
  /** Answers are small. */
  readonly ofWorker: (jobId: string) => HeldMemory;
}

/** Requests are read in parallel and slowly, answers taken so: each limit bounds one of them only. */
export function createBodyMemory(): BodyMemory {
  const { projects, strangers, workers } = limits.bodyMemory;
  return {
    ofProject: createExchangeMemory(projects),
    ofStranger: createExchangeMemory(strangers),
    ofWorker: createMemory(workers),
  };
}

function createExchangeMemory(bounds: MemoryBounds) {
  const [ofRequest, ofAnswer] = [createMemory(bounds), createMemory(bounds)];
  return (caller: string) => ({ request: ofRequest(caller), answer: ofAnswer(caller) });
}

function createMemory(bounds: MemoryBounds) {
  const budget = new KeyedBudget({ all: bounds.all, perKey: bounds.perCaller });
  return (caller: string): HeldMemory => {
    let held = 0;
    const takeAnyway = (bytes: number) => {
      budget.hold(caller, bytes);
      held += bytes;
    };
    return {
      take(bytes) {
        if (!budget.hasRoom(caller, bytes)) throw noRoomError();
        takeAnyway(bytes);
      },
      takeAnyway,
      [Symbol.dispose]: () => takeAnyway(-held),
    };
  };
}

function noRoomError(): ServiceError {
  const message = "The bodies of other requests and answers under way leave no memory for this one";
  const headers = { "retry-after": String(retrySeconds) };
  return new ServiceError("unavailable", message, { headers });
}

const bindings = z.object({ outgoing: z.instanceof(ServerResponse) });

/** Disposes of what is held once the answer is sent, or its connection is closed. */
export function releaseAfterAnswer(env: unknown, held: Disposable): void {
  const outgoing = bindings.safeParse(env).data?.outgoing;
  const release = () => held[Symbol.dispose]();
  if (outgoing === undefined || outgoing.closed) release();
  else outgoing.once("close", release);
}
