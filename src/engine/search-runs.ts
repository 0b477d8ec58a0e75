import { availableParallelism } from "node:os";
import {
  type CandidateOptions,
  withCandidate,
  writeForms,
  type WrittenForm,
} from "./search-candidates.ts";
import { composeRecipe } from "./search/forms.ts";
import type { Choice } from "./search/front.ts";
import { dbToNoise, noiseToDb } from "./search/prediction.ts";
import { Trials } from "./search/trials.ts";
import { divideUnits, type Unit } from "./search-units.ts";
import { ServiceError } from "../contract/errors.ts";
import {
  type Auto,
  findLanguageGoal,
  type GoalFigures,
  goalMarginDb,
} from "../contract/jobs/auto.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import type { Accuracy } from "../contract/jobs/telemetry.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { countSessions } from "./accuracy/model-run.ts";
import { isCheckpoint } from "./language/open-language-model.ts";
import { writeRunnableOriginal } from "./language/runnable-original.ts";
import { readAvailableMemoryBytes } from "./accuracy/available-memory.ts";

/** A candidate that was run on the evaluation's samples. */
export interface VerifiedPoint {
  readonly choice: Choice;
  /** The ordinary recipe of the candidate. */
  readonly recipe: Recipe;
  /** Undefined where nothing was predicted before it was run; of a language model as lossDb. */
  readonly predictedDb: number | undefined;
  readonly figures: GoalFigures;
  /** SQNR of the worst output; of a language model its KL divergence as if it were that noise. */
  readonly lossDb: number;
  /** How far the goals of accuracy are reached, dB. */
  readonly marginDb: number;
}

/** Runs candidates, side by side as far as processors and memory allow, within the budget. */
export class CandidateRuns implements AsyncDisposable {
  readonly trials: Trials;
  readonly forms: readonly WrittenForm[];
  readonly units: readonly Unit[];
  readonly #options: CandidateOptions;
  readonly #auto: Auto;
  readonly #sessions: number;
  readonly #started: number;
  readonly #verified = new Map<string, Promise<VerifiedPoint>>();
  #count = 0;

  private constructor(
    options: CandidateOptions,
    auto: Auto,
    opened: { trials: Trials; forms: readonly WrittenForm[]; sessions: number; started: number },
  ) {
    this.#options = options;
    this.#auto = auto;
    this.trials = opened.trials;
    this.forms = opened.forms;
    this.units = divideUnits(opened.forms, opened.trials.isLanguage);
    this.#sessions = opened.sessions;
    this.#started = opened.started;
  }

  /**
   * @throws ServiceError those of Trials.open and writeForms; recipe_unsupported for a model that
   * does not fit into memory, or a goal of language models for another one
   */
  static async open(options: CandidateOptions, auto: Auto): Promise<CandidateRuns> {
    const started = performance.now();
    const { log, onProgress, scratch, signal } = options;
    const { executionProvider } = options.target;
    const modelPath = await writeRunnableOriginal(
      options.modelPath,
      executionProvider,
      scratch,
      signal,
    );
    const fitting = await countSessions(modelPath, await readAvailableMemoryBytes());
    if (fitting === 0) {
      const message = "`auto` runs the model, which does not fit into the memory at hand";
      throw new ServiceError("recipe_unsupported", message);
    }
    onProgress(0, "Running the original");
    const checkpointPath = isCheckpoint(options.modelPath) ? options.modelPath : undefined;
    const trials = await Trials.open({ ...options, modelPath, checkpointPath });
    const goal = trials.isLanguage ? undefined : findLanguageGoal(auto);
    if (goal !== undefined) {
      const message = `The goal \`${goal}\` is one of language models that are run on text`;
      throw new ServiceError("recipe_unsupported", message);
    }
    onProgress(0, "Writing the forms of weights");
    const forms = await writeForms(options, trials.isLanguage);
    const sessions = Math.max(1, Math.min(availableParallelism(), fitting));
    const runs = new CandidateRuns(options, auto, { trials, forms, sessions, started });
    const { length } = runs.units.filter(({ match }) => match !== undefined);
    const searched = `${formatCount(length, "weight")} in ${formatCount(forms.length, "form")}`;
    log(`Search: ${searched}, on ${formatCount(trials.samples, `${trials.data} sample`)}`);
    return runs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.trials[Symbol.asyncDispose]();
  }

  get mostAccurateForm(): WrittenForm {
    const [first] = this.forms;
    if (first === undefined) throw new TypeError("A search has no forms");
    return first;
  }

  /** Candidates that were run. */
  get count(): number {
    return this.#count;
  }

  get seconds(): number {
    return (performance.now() - this.#started) / 1000;
  }

  get isOver(): boolean {
    return this.seconds > this.#auto.budgetSeconds;
  }

  /** Works on items side by side, in their order, until a share of the budget is spent. */
  async forEach<T>(
    items: readonly T[],
    work: (item: T) => Promise<unknown>,
    share = 1,
  ): Promise<void> {
    const queue = [...items];
    const serve = async () => {
      try {
        for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
          if (this.seconds > this.#auto.budgetSeconds * share) return;
          await work(item);
        }
      } finally {
        // What is left after a failure is of no use.
        queue.length = 0;
      }
    };
    const serving = Array.from({ length: this.#sessions }, serve);
    await Promise.allSettled(serving);
    await Promise.all(serving);
  }

  /** Noise of each output relative to its signal where only a unit has a form. */
  async measureUnit({ weights }: Unit, { form, plan, rejected }: WrittenForm): Promise<number[]> {
    const measured = new Set(weights);
    const others = plan.weights.filter(({ weight }) => !measured.has(weight.index));
    const unchanged = others.map(({ weight }) => [weight.index, "is not measured now"] as const);
    const candidate = {
      recipe: composeRecipe(this.#options.recipe, [{ match: undefined, form }], false),
      rejected: new Map([...unchanged, ...rejected]),
    };
    return this.#run(candidate, (file) => this.trials.measureNoise(file));
  }

  /** Noise of a choice's outputs on the search's samples, as Trials.measureNoise has it. */
  async measureNoise(choice: Choice): Promise<number[]> {
    return this.#run(this.#compose(choice), (file) => this.trials.measureNoise(file));
  }

  /** Runs a choice on the evaluation's samples, once. */
  async verify(choice: Choice, predictedDb?: number): Promise<VerifiedPoint> {
    const key = choice.join();
    const running = this.#verified.get(key) ?? this.#verifyNow(choice, predictedDb);
    this.#verified.set(key, running);
    return running;
  }

  async listVerified(): Promise<VerifiedPoint[]> {
    return Promise.all(this.#verified.values());
  }

  /** The choice of one form wherever it can be had. */
  chooseUniform(form: WrittenForm): Choice {
    return this.units.map(({ options }) =>
      Math.max(
        0,
        options.findIndex((option) => option.forms.includes(form)),
      ),
    );
  }

  #compose(choice: Choice): Candidate {
    const forms = this.units.map(({ options }, unit) => options[choice[unit] ?? 0]?.forms[0]);
    const chosen = this.units.map(({ match }, unit) => ({ match, form: forms[unit]?.form }));
    const rejected = this.units.flatMap(({ weights }, unit) =>
      [...(forms[unit]?.rejected ?? [])].filter(([weight]) => weights.includes(weight)),
    );
    const recipe = composeRecipe(this.#options.recipe, chosen, this.trials.isLanguage);
    return { recipe, rejected: new Map(rejected) };
  }

  async #verifyNow(choice: Choice, predictedDb?: number): Promise<VerifiedPoint> {
    const candidate = this.#compose(choice);
    return this.#run(candidate, async (file, bytes) => {
      const figures = listFigures(await this.trials.compare(file), bytes);
      const { klDivergence } = figures;
      const lossDb = klDivergence === undefined ? figures.sqnrDb : noiseToDb([klDivergence]);
      const describe = (decibels: number) =>
        klDivergence === undefined
          ? `${decibels.toFixed(2)} dB`
          : `${dbToNoise(decibels).toFixed(4)} nats`;
      const predicted = predictedDb === undefined ? "" : `, ${describe(predictedDb)} predicted`;
      const name = klDivergence === undefined ? "SQNR" : "KL divergence";
      this.#options.log(`Search: ${formatBytes(bytes)}, ${name} ${describe(lossDb)}${predicted}`);
      const marginDb = goalMarginDb(this.#auto, figures);
      return { choice, recipe: candidate.recipe, predictedDb, figures, lossDb, marginDb };
    });
  }

  async #run<T>(
    candidate: Candidate,
    use: (file: string, bytes: number) => Promise<T>,
  ): Promise<T> {
    this.#count += 1;
    return withCandidate(candidate, this.forms, this.#options, use);
  }
}

interface Candidate {
  readonly recipe: Recipe;
  /** Weights that stay as they are, and why. */
  readonly rejected: ReadonlyMap<number, string>;
}

function listFigures({ sqnrDb, cosine, outputs, language }: Accuracy, bytes: number): GoalFigures {
  const agreements = outputs.flatMap(({ top1Agreement }) => top1Agreement ?? []);
  const top1Agreement = agreements.length === 0 ? null : Math.min(...agreements);
  const figures = { bytes, sqnrDb, cosine, top1Agreement };
  if (language === undefined) return figures;
  const { perplexityRatio, klDivergence } = language;
  return { ...figures, perplexityRatio, klDivergence };
}
