import { BridleError } from '../contract/errors.js';
import type { ExecuteRequest, HarnessField, HarnessInfo } from '../contract/harness.js';

type OptionalField = Extract<HarnessField, 'model' | 'system' | 'reasoning' | 'temperature' | 'seed'>;

const OPTIONAL: readonly OptionalField[] = ['model', 'system', 'reasoning', 'temperature', 'seed'];

/**
 * The second line of defence behind the service: a harness never drops a field that it does not honour.
 * @param permissions the modes that this harness can enforce
 * @throws BridleError UNSUPPORTED_FIELD naming field and harness
 */
export function refuseUnsupported(
  request: ExecuteRequest,
  info: HarnessInfo,
  permissions: readonly ExecuteRequest['permissions'][],
): void {
  for (const field of OPTIONAL) {
    if (request[field] !== null && !info.supports.includes(field)) {
      throw new BridleError('UNSUPPORTED_FIELD', `harness "${info.name}" has no way to honour "${field}"`, {
        path: field,
      });
    }
  }
  if (!permissions.includes(request.permissions)) {
    const message = `harness "${info.name}" has no permission mode "${request.permissions}"`;
    throw new BridleError('UNSUPPORTED_FIELD', message, { path: 'permissions' });
  }
}
