// What is sent, when it is sent again, and how an answer is read.
import { readRetryAfter, ServiceUnreachable, toProblem, WaitTimeout, type Problem } from './errors.js';
import { VERSION } from './version.js';

const TEMPORARY = new Set([429, 502, 503, 504]);
const FIRST_PAUSE_SECONDS = 0.5;
const FIRST_POLL_SECONDS = 0.25;
const LONGEST_POLL_SECONDS = 5;

/** Options of a write, which is done once however often it is sent. */
export interface Deciding {
    idempotency_key?: string;
}

/** Options of a change of one version. */
export interface Changing {
    /** The ETag of the version, as `etagOf` returns it. */
    if_match: string;
}

/** Options of an estimate. */
export interface Estimating {
    /** Revision of a write that the estimate sees; that of the last write of this client unless it is given. */
    catalog_revision?: number;
}

/** Options of a wait. */
export interface Waiting {
    timeout_seconds?: number;
}

/** One request. */
export interface Call {
    method: string;
    path: string;
    query?: Record<string, unknown>;
    body?: unknown;
    headers?: Record<string, string>;
    if_match?: string;
    idempotency_key?: string;
    /** True if it computes and stores nothing. */
    is_estimate?: boolean;
    catalog_revision?: number | undefined;
    /** True if the body travels with its digest. */
    is_digested?: boolean;
}

export interface Options {
    url: string;
    api_key?: string;
    /** Time of one request. */
    timeout_seconds?: number;
    retries?: number;
    longest_pause_seconds?: number;
    /** A fetch of the caller's own, which brings proxies and certificates. */
    fetch?: typeof globalThis.fetch;
}

/** The service, the credentials and the rules of repetition. */
export class Transport {
    /** Revision of the last write, which estimates send so that they see it. */
    catalog_revision: number | undefined;
    readonly #options: Required<Omit<Options, 'api_key'>> & Pick<Options, 'api_key'>;

    constructor(options: Options) {
        const defaults = { timeout_seconds: 60, retries: 4, longest_pause_seconds: 60, fetch: globalThis.fetch };
        this.#options = { ...defaults, ...options, url: options.url.replace(/\/+$/, '') };
    }

    /** Sends a call until it succeeds, is refused, or has been repeated often enough. */
    async send(call: Call): Promise<Response> {
        const { retries, longest_pause_seconds, url } = this.#options;
        for (let attempt = 0; ; attempt++) {
            const isLast = attempt >= retries || !isRepeatable(call);
            let pause = FIRST_PAUSE_SECONDS * 2 ** attempt * (0.5 + Math.random() / 2);
            const response = await this.#sendOnce(call).catch((cause: unknown) => {
                if (isLast) throw new ServiceUnreachable(`${url}: ${String(cause)}`, { cause });
            });
            if (response?.ok) {
                this.#noteRevision(response);
                return response;
            }
            if (response) {
                const problem = await toProblem(response);
                pause = Math.max(pause, problem.retry_after_seconds ?? 0);
                if (isLast || !isTemporary(problem) || pause > longest_pause_seconds) throw problem;
            }
            await sleep(pause);
        }
    }

    /** Sends a call and reads its answer. */
    async ask<Answer>(call: Call): Promise<Answer> {
        return read<Answer>(await this.send(call));
    }

    /** Sends a call until the state of its answer is none of those that end by themselves. */
    async wait<Answer extends { state: string }>(call: Call, states: string[], options: Waiting): Promise<Answer> {
        const deadline = performance.now() + (options.timeout_seconds ?? 600) * 1000;
        for (let attempt = 0; ; attempt++) {
            const response = await this.send(call);
            const answer = await read<Answer>(response);
            if (!states.includes(answer.state)) return answer;
            const usual = Math.min(FIRST_POLL_SECONDS * 1.5 ** attempt, LONGEST_POLL_SECONDS);
            const pause = readRetryAfter(response) || usual;
            if (performance.now() + pause * 1000 > deadline) throw new WaitTimeout(answer.state);
            await sleep(pause);
        }
    }

    async #sendOnce(call: Call): Promise<Response> {
        const { fetch, timeout_seconds, url } = this.#options;
        const body = call.body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(call.body));
        const headers = await this.#headers(call, body);
        const signal = AbortSignal.timeout(timeout_seconds * 1000);
        const response = await fetch(url + call.path + toQuery(call.query ?? {}), {
            method: call.method,
            headers,
            body: body ?? null,
            signal,
        });
        // What breaks while the body arrives is an answer that was lost too.
        const empty = response.status === 204 || response.status === 304;
        return new Response(empty ? null : await response.arrayBuffer(), response);
    }

    async #headers(call: Call, body: Uint8Array<ArrayBuffer> | undefined): Promise<Record<string, string>> {
        const { api_key } = this.#options;
        const revision = call.catalog_revision ?? this.catalog_revision;
        const optional = {
            Authorization: api_key && `Bearer ${api_key}`,
            'Catalog-Revision': call.is_estimate && revision !== undefined ? String(revision) : undefined,
            'Content-Digest': body && call.is_digested ? await digest(body) : undefined,
            'Content-Type': body && 'application/json',
            'Idempotency-Key': call.idempotency_key,
            'If-Match': call.if_match,
            'User-Agent': `ironlaw-client-typescript/${VERSION}`,
        };
        const given = Object.entries(optional).filter((pair): pair is [string, string] => Boolean(pair[1]));
        return { ...Object.fromEntries(given), ...call.headers };
    }

    #noteRevision(response: Response): void {
        const revision = Number(response.headers.get('Catalog-Revision') ?? 0);
        if (revision) this.catalog_revision = Math.max(revision, this.catalog_revision ?? 0);
    }
}

/** Operations of one noun. */
export class Resource {
    constructor(protected readonly transport: Transport) {}

    protected ask<Answer>(call: Call): Promise<Answer> {
        return this.transport.ask(call);
    }

    protected waitFor<Answer extends { state: string }>(
        call: Call,
        states: string[],
        options: Waiting,
    ): Promise<Answer> {
        return this.transport.wait(call, states, options);
    }

    protected pages<Page extends PageOf<Item>, Item>(call: Call): Pages<Page, Item> {
        return new Pages(this.transport, call);
    }
}

export interface PageOf<Item> {
    items: Item[];
    next_page_token: string | null;
}

/** The rows of a list, which are fetched page by page. */
export class Pages<Page extends PageOf<Item>, Item> implements AsyncIterable<Item> {
    readonly #transport: Transport;
    readonly #call: Call;

    constructor(transport: Transport, call: Call) {
        this.#transport = transport;
        this.#call = call;
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
        for await (const page of this.pages()) yield* page.items;
    }

    /** Each page as it was answered. */
    async *pages(): AsyncGenerator<Page> {
        let call: Call | undefined = this.#call;
        while (call) {
            const page: Page = await this.#transport.ask(call);
            yield page;
            const page_token: string | null = page.next_page_token;
            call = page_token === null ? undefined : { ...call, query: { ...call.query, page_token } };
        }
    }
}

const headers = new WeakMap<object, Headers>();

/** The headers that came with an answer. */
export function headersOf(answer: object): Headers {
    const found = headers.get(answer);
    if (!found) throw new TypeError('only what a client has returned has headers');
    return found;
}

/** The ETag of an answer, which `if_match` of a change is given. */
export function etagOf(answer: object): string {
    return headersOf(answer).get('ETag') ?? '';
}

/** JSON, text, bytes, or nothing where there is no content. */
async function read<Answer>(response: Response): Promise<Answer> {
    const kind = response.headers.get('Content-Type') ?? '';
    if (!response.body) return undefined as Answer;
    if (kind.startsWith('text/')) return (await response.text()) as Answer;
    if (!kind.startsWith('application/json')) return new Uint8Array(await response.arrayBuffer()) as Answer;
    const answer = (await response.json()) as Answer & object;
    headers.set(answer, response.headers);
    return answer;
}

function isRepeatable(call: Call): boolean {
    return call.method === 'GET' || call.method === 'PUT' || Boolean(call.is_estimate || call.idempotency_key);
}

function isTemporary(problem: Problem): boolean {
    return TEMPORARY.has(problem.status) || problem.code === 'IDEMPOTENCY_KEY_IN_USE';
}

function toQuery(query: Record<string, unknown>): string {
    const pairs = Object.entries(query).flatMap(([name, value]) =>
        [value ?? []].flat().map((each) => [name, String(each)]),
    );
    return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

async function digest(body: Uint8Array<ArrayBuffer>): Promise<string> {
    const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
    return `sha-256=:${btoa(String.fromCharCode(...bytes))}:`;
}

function sleep(seconds: number): Promise<void> {
    return new Promise((done) => setTimeout(done, seconds * 1000));
}
