// Refusals of the service, and calls without an answer.
import type { FieldError, Problem as Details } from './types.js';

/** Any failure of a call. */
export class IronlawError extends Error {
    override get name(): string {
        return this.constructor.name;
    }
}

/** The service gave no answer; `cause` is the error of fetch. */
export class ServiceUnreachable extends IronlawError {}

/** The time of a wait ended before the state did. */
export class WaitTimeout extends IronlawError {
    constructor(readonly state: string) {
        super(`the state is still ${state}`);
    }
}

/** A webhook message is not signed by the secret, or is too old. */
export class InvalidSignature extends IronlawError {}

/** A refusal of the service, as its problem details (RFC 9457) say. */
export class Problem extends IronlawError {
    /** Stable name of the problem. */
    readonly code: string;
    readonly detail: string;
    /** Fields that are wrong, each with its JSON Pointer. */
    readonly errors: FieldError[];
    /** Id of the request, by which the log of the service is searched. */
    readonly request_id: string;

    constructor(
        readonly status: number,
        details: Partial<Details>,
        readonly retry_after_seconds: number | undefined,
    ) {
        const { code = 'UNKNOWN', detail = '', errors = [], request_id = '' } = details;
        const fields = errors.map((error) => `\n  ${error.pointer}: ${error.detail}`);
        super(`${status} ${code}: ${detail}${fields.join('')}`);
        this.code = code;
        this.detail = detail;
        this.errors = errors;
        this.request_id = request_id;
    }
}

/** The request or one of its fields is wrong. */
export class InvalidRequest extends Problem {}
/** The credentials are missing or not valid. */
export class Unauthenticated extends Problem {}
/** The credentials do not allow this. */
export class Forbidden extends Problem {}
/** The resource does not exist. */
export class NotFound extends Problem {}
/** The state of the resource does not allow this. */
export class Conflict extends Problem {}
/** The resource has changed since its ETag was read. */
export class VersionConflict extends Problem {}
/** The caller made too many requests. */
export class RateLimited extends Problem {}
/** The service, or a proxy before it, cannot answer right now. */
export class ServiceUnavailable extends Problem {}

const KINDS: Record<number, typeof Problem> = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: VersionConflict,
    413: InvalidRequest,
    414: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: RateLimited,
    431: InvalidRequest,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
};

/** The problem that a response without success describes. */
export async function toProblem(response: Response): Promise<Problem> {
    const isJson = /\bjson\b/.test(response.headers.get('Content-Type') ?? '');
    const details: Partial<Details> = isJson ? await response.json() : { detail: response.statusText };
    return new (KINDS[response.status] ?? Problem)(response.status, details, readRetryAfter(response));
}

/** Seconds of `Retry-After`, if the header says a number. */
export function readRetryAfter(response: Response): number | undefined {
    const text = response.headers.get('Retry-After') ?? '';
    return /^\d+$/.test(text) ? Number(text) : undefined;
}
