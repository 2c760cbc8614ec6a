// What the client does where no service is: each answer is given, each request is kept.
import { Ironlaw, NotFound, RateLimited, ServiceUnreachable, verifyWebhook, WaitTimeout } from './index.js';

type Given = Response | Error;
const [secret = '', sent_at = '', signature = ''] = process.argv.slice(2);
const json = (body: unknown, status = 200, headers = {}) =>
    new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } });

function stub(...answers: Given[]) {
    const requests: Request[] = [];
    const fetch = async (url: RequestInfo | URL, init?: RequestInit) => {
        requests.push(new Request(url, init));
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer instanceof Response) return answer.clone();
        throw answer;
    };
    return { requests, ironlaw: new Ironlaw({ url: 'http://ironlaw.test/', fetch }) };
}

async function kind(call: Promise<unknown>) {
    return call.then(() => 'none', (error: Error) => error.name);
}

/** Method and path of each operation, called with the id `the-id`. */
async function reached() {
    const { requests, ironlaw } = stub(json({ items: [], next_page_token: null }));
    const found: string[] = [];
    for (const resource of Object.values(ironlaw)) {
        const names = Object.getOwnPropertyNames(Object.getPrototypeOf(resource));
        if (!names.includes('constructor') || resource.constructor.name === 'Transport') continue;
        for (const name of names.filter((each) => each !== 'constructor' && each !== 'wait')) {
            const answer = resource[name]('the-id', 'the-id', 'the-id');
            await (Symbol.asyncIterator in answer ? answer.pages().next() : answer);
            const request = requests.at(-1)!;
            found.push(`${request.method} ${new URL(request.url).pathname}`);
        }
    }
    return found;
}

async function repeated() {
    const { requests, ironlaw } = stub(new TypeError('reset'), json({}, 503, { 'Retry-After': '1' }), json({}));
    const begun = performance.now();
    await ironlaw.plans.cancel('one');
    const keys = new Set(requests.map((request) => request.headers.get('Idempotency-Key')));
    return [requests.length, keys.size, performance.now() - begun > 1200];
}

async function notRepeated() {
    const busy = stub(json({}, 503));
    const unkeyed = await kind(busy.ironlaw.leases.claim({} as never));
    const late = stub(json({ code: 'TOO_MANY_REQUESTS' }, 429, { 'Retry-After': '90' }));
    return [unkeyed, await kind(late.ironlaw.models.get('one')), busy.requests.length + late.requests.length];
}

async function digested() {
    const { requests, ironlaw } = stub(json({}));
    await ironlaw.benchmarkResults.report('one', {} as never);
    return requests[0]?.headers.get('Content-Digest');
}

async function verified(changes: { body?: string; secret?: string; sent_at?: string }) {
    const headers = {
        'webhook-id': 'msg_1',
        'webhook-timestamp': changes.sent_at ?? sent_at,
        'webhook-signature': `v1,short ${signature}`,
    };
    const body = new TextEncoder().encode(changes.body ?? '{"type": "webhook.test"}');
    return kind(verifyWebhook(changes.secret ?? secret, headers, body));
}

const unreachable = new Ironlaw({
    url: 'http://ironlaw.test',
    retries: 0,
    fetch: () => Promise.reject(new TypeError('refused')),
});
console.log(
    JSON.stringify({
        reached: await reached(),
        repeated: await repeated(),
        not_repeated: await notRepeated(),
        digested: await digested(),
        late: await kind(stub(json({ state: 'running' })).ironlaw.plans.wait('one', { timeout_seconds: 0 })),
        kinds: [NotFound, RateLimited, ServiceUnreachable, WaitTimeout].map((each) => each.name),
        unreachable: await kind(unreachable.models.get('one')),
        missing: await kind(stub(new Response('gone', { status: 404 })).ironlaw.models.get('one')),
        verified: [
            await verified({}),
            await verified({ body: '{}' }),
            await verified({ secret: `whsec_${btoa('another secret')}` }),
            await verified({ sent_at: '1700000000' }),
        ],
    }),
);
