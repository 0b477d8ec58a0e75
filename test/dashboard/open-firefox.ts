import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

/** Longest wait: a busy machine is no reason to fail. */
const patienceMs = 120_000;
/** As long as two drawings of a loaded machine. */
const stillMs = 300;
const pollMs = 100;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly level?: string; readonly text?: string };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: string;
  readonly message?: string;
}

/**
 * Debian's Firefox, without a window, until the test has ended. It speaks WebDriver BiDi; of that,
 * Playwright asks for commands that this Firefox does not have yet.
 */
export async function openFirefox(t: Pick<TestContext, "after">): Promise<FirefoxPage> {
  const profile = await mkdtemp(join(tmpdir(), "firefox-"));
  const options = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
  const child = spawn("firefox-esr", options, { stdio: ["ignore", "ignore", "pipe"] });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await rm(profile, { recursive: true, force: true, maxRetries: 20 });
  });
  const socket = new WebSocket(`${await readAddress(child.stderr)}/session`);
  await once(socket, "open");
  const page = new FirefoxPage(socket);
  await page.begin();
  return page;
}

async function readAddress(output: Readable): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const found = /^WebDriver BiDi listening on (?<address>ws:\S+)$/.exec(line)?.groups?.[
      "address"
    ];
    if (found !== undefined) {
      output.resume();
      return found;
    }
  }
  throw new Error("Firefox ended before it could be driven");
}

export class FirefoxPage {
  /** What the browser complained of: scripts that failed, and breaches of the page's policy. */
  readonly complaints: string[] = [];
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, (message: Message) => void>();
  #context = "";
  #sent = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(String(data))));
  }

  async begin(): Promise<void> {
    await this.#send("session.new", { capabilities: {} });
    const { contexts } = await this.#send("browsingContext.getTree", {});
    const [first] = contexts as { readonly context: string }[];
    assert(first);
    this.#context = first.context;
    await this.#send("session.subscribe", { events: ["log.entryAdded"] });
  }

  async goto(url: string): Promise<void> {
    await this.#send("browsingContext.navigate", { context: this.#context, url, wait: "complete" });
  }

  /** Waits for something that is shown, by a selector and a part of its text. */
  async waitFor(selector: string, text = ""): Promise<void> {
    await this.#find(selector, text);
  }

  async click(selector: string, text = ""): Promise<void> {
    const { x, y } = await this.#findStill(selector, text);
    const moves = { type: "pointerMove", x: Math.round(x), y: Math.round(y) };
    const presses = ["pointerDown", "pointerUp"].map((type) => ({ type, button: 0 }));
    const pointer = { type: "pointer", id: "mouse", actions: [moves, ...presses] };
    await this.#send("input.performActions", { context: this.#context, actions: [pointer] });
  }

  async type(text: string): Promise<void> {
    const actions = text.split("").flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    const key = { type: "key", id: "keyboard", actions };
    await this.#send("input.performActions", { context: this.#context, actions: [key] });
  }

  /** Calls a function of the page, given as its text, with texts. @returns what JSON keeps of it */
  async evaluate<T>(source: string, ...texts: string[]): Promise<T> {
    const { result } = await this.#send("script.callFunction", {
      functionDeclaration: `(...texts) => JSON.stringify((${source})(...texts))`,
      arguments: texts.map((value) => ({ type: "string", value })),
      target: { context: this.#context },
      awaitPromise: false,
    });
    const { value = "null" } = result as { readonly value?: string };
    return JSON.parse(value) as T;
  }

  async #find(selector: string, text: string): Promise<Point> {
    for (const end = Date.now() + patienceMs; Date.now() < end; await sleep(pollMs)) {
      const found = await this.evaluate<Point | null>(locate, selector, text);
      if (found !== null) return found;
    }
    throw new Error(`${selector} with "${text}" is not shown`);
  }

  /** Where something is once it no longer moves, as what is above it appears. */
  async #findStill(selector: string, text: string): Promise<Point> {
    for (let before = await this.#find(selector, text); ;) {
      await sleep(stillMs);
      const now = await this.#find(selector, text);
      if (now.x === before.x && now.y === before.y) return now;
      before = now;
    }
  }

  #receive(message: Message): void {
    if (message.id !== undefined) this.#answers.get(message.id)?.(message);
    const { level, text = "" } = message.params ?? {};
    if (message.method === "log.entryAdded" && level === "error") this.complaints.push(text);
  }

  async #send(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#sent;
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#answers.set(id, resolve);
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error, message } = await promise;
    this.#answers.delete(id);
    if (result === undefined) throw new Error(`${method}: ${error}: ${message}`);
    return result;
  }
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The middle of the first visible element, scrolled into view. */
const locate = `(selector, text) => {
  for (const element of document.querySelectorAll(selector)) {
    if (!element.checkVisibility() || !element.textContent.includes(text)) continue;
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x: x + width / 2, y: y + height / 2 };
  }
  return null;
}`;
