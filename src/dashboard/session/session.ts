import type { Self } from "../../contract/people/session.ts";
import type { Action } from "../../contract/people/permissions.ts";
import { ProblemError } from "../../client/problem-error.ts";
import { setServiceTime } from "../shared/clock.ts";
import { access } from "../shared/connection-state.ts";
import { self, sessionHasEnded } from "./session-state.ts";
import { service } from "./service.ts";

/** Tells other tabs about sign-ins and sign-outs. */
const channel = new BroadcastChannel("session");
channel.addEventListener("message", () => void loadSelf());

export async function loadSelf(): Promise<void> {
  try {
    const answer = await keepProject(self.value, await service.call("getSelf", {}));
    setServiceTime(answer.now);
    if (self.value !== undefined && isOther(self.value, answer)) location.reload();
    self.value = answer;
    // Whoever signs in is led to a page, whose address can be kept.
    if (location.pathname === "/sign-in") history.replaceState(undefined, "", "/jobs");
    access.value = "in";
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "unauthorized") throw error;
    sessionHasEnded();
  }
}

/**
 * Sessions begin in a project of their own choice: a new one of the same person goes on in that of
 * the page, on which something may have been typed.
 */
async function keepProject(former: Self | undefined, answer: Self): Promise<Self> {
  if (former === undefined || former.sessionId === answer.sessionId) return answer;
  const { project, personId } = former;
  const isThere = answer.projects.some(({ name }) => name === project);
  if (personId !== answer.personId || project === answer.project || !isThere) return answer;
  await service.call("switchProject", { body: { project } });
  channel.postMessage("switched");
  return service.call("getSelf", {});
}

/** Whether what the page shows is another person's, or of another project. */
function isOther(former: Self, { project, personId }: Self): boolean {
  return former.project !== project || former.personId !== personId;
}

/** Signs in by a link's secret, which can be used once. */
export async function signIn(secret: string): Promise<void> {
  await service.call("signIn", { body: { secret } });
  await announceSignIn();
}

/** Shows in all tabs who is signed in: a sign-in at the issuer ends in any of them. */
export async function announceSignIn(): Promise<void> {
  await loadSelf();
  channel.postMessage("asked who is signed in");
}

export async function signOut(route: "signOut" | "signOutEverywhere"): Promise<void> {
  await service.callEmpty(route, {});
  channel.postMessage("signed out");
  // A new page has nothing of what this one has read for the person, such as lists to go back to.
  location.reload();
}

/** Opens another project of the person, in all tabs. */
export async function chooseProject(project: string): Promise<void> {
  await service.call("switchProject", { body: { project } });
  channel.postMessage("switched");
  location.assign("/jobs");
}

/** Whether the person may do an action, as far as it does not depend on what it is done to. */
export function mayDo(action: Action): boolean {
  return self.value?.actions.includes(action) ?? false;
}
