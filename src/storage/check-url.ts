import { ServiceError } from "../contract/errors.ts";
import { checkAddressLiteral } from "./public-address.ts";
import { stripUrlSecrets } from "./strip-url-secrets.ts";

/**
 * Checks the address of a model before it is requested.
 * @throws ServiceError model_source_refused
 */
export function checkUrl(url: URL, allowPrivateAddresses: boolean): void {
  if (url.protocol !== "https:" && !(url.protocol === "http:" && allowPrivateAddresses)) {
    throw refusedUrlError(url, "must be an https:// address");
  }
  if (url.username !== "" || url.password !== "") {
    throw refusedUrlError(url, "must not contain a user name or password");
  }
  if (!allowPrivateAddresses) checkAddressLiteral(url.hostname);
}

function refusedUrlError(url: URL, problem: string): ServiceError {
  return new ServiceError("model_source_refused", `"${stripUrlSecrets(url)}" ${problem}`);
}
