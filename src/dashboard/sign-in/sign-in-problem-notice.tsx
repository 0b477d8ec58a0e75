import { type SignInProblem, signInProblems } from "../../contract/people/session.ts";
import { ErrorNotice } from "../shared/notice.tsx";

/** Why the single sign-on signed nobody in, which leads to this page then. */
export function SignInProblemNotice() {
  const problem = new URLSearchParams(location.search).get("problem");
  if (problem === null || !isProblem(problem)) return undefined;
  return <ErrorNotice error={new Error(signInProblems[problem])} />;
}

function isProblem(text: string): text is SignInProblem {
  return Object.hasOwn(signInProblems, text);
}
