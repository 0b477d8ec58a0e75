/** Every header of answers besides those of every HTTP server, and its description. */
export const responseHeaders = {
  location: "URL of what was created.",
  "idempotency-replayed":
    "`true` where this is the first answer to the same Idempotency-Key again.",
  "preference-applied": "The preference that was followed.",
  etag: "Names this version of the answer, in quotes; of a file its SHA-256.",
  "accept-ranges": "`bytes`: parts of the file can be asked for.",
  "content-range": "The part of the file that the answer contains.",
  "content-disposition": "Name to save the file under.",
  "content-length": "Size of the file, bytes.",
  "set-cookie": "The session's cookie, or its end.",
  "x-accel-buffering": "`no`: a proxy passes each line on at once.",
  "upload-offset": "Bytes that are kept of an upload that broke off.",
} as const;
export type ResponseHeader = keyof typeof responseHeaders;
