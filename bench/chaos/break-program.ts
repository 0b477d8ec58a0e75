import { setTimeout as delay } from "node:timers/promises";
import type { TcpRelay } from "../../test/support/tcp-relay.ts";
import type { Cut, ProgramFault } from "./plan-faults.ts";
import type { SupervisedProgram } from "./supervise-program.ts";

/** A program that reaches the API server through a relay of its own. */
export interface ConnectedProgram {
  readonly program: SupervisedProgram;
  readonly relay: TcpRelay;
}

const beginCut: Readonly<Record<Cut, (relay: TcpRelay) => void>> = {
  break: (relay) => relay.cut(),
  refuse: (relay) => relay.interrupt(),
  silence: (relay) => relay.silence(),
};

export async function breakProgram(
  { program, relay }: ConnectedProgram,
  fault: ProgramFault,
): Promise<void> {
  await program.untilWorking();
  await delay(fault.afterMs);
  if (fault.kind === "kill") return program.kill();
  beginCut[fault.how](relay);
  if (fault.how !== "break") await delay(fault.forMs);
  relay.restore();
}
