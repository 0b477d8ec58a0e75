/** Codes of connections that were never opened: the other side has not received the request. */
const unsentCodes = [
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** Starts of the codes of the system and of undici that mean a lost connection. */
const lostCodes = [
  ...unsentCodes,
  "ECONN",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_RESPONSE",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_SOCKET",
];

/** Whether a request was not received since its connection could not be opened. */
export function isUnsent(error: unknown): boolean {
  return unsentCodes.includes(networkErrorCode(error));
}

/** Whether a connection could not be opened or was lost. */
export function isConnectionLost(error: unknown): boolean {
  const code = networkErrorCode(error);
  return lostCodes.some((start) => code.startsWith(start)) || isCutAnswer(error);
}

/** Whether the process has closed its own connections. */
export function isClosedByClient(error: unknown): boolean {
  return networkErrorCode(error) === "UND_ERR_DESTROYED";
}

function networkErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** What undici throws where a connection's last answer is cut off: without a code in Node's own. */
function isCutAnswer(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === "HTTPParserError" &&
    error.message.includes("Invalid EOF state")
  );
}
