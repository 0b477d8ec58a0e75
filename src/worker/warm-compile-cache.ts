/**
 * Loads what a worker and its processes load, so that Node keeps it compiled in the folder
 * NODE_COMPILE_CACHE: workers may only read it. The image and the tests run it once.
 */
import "../engine/evaluate/session-requests.ts";
import "../storage/directory-blob-store.ts";
import "../storage/service-blob-store.ts";
import "./service-connection.ts";
import "./supervise-job.ts";
import "./work-on-assignment.ts";
