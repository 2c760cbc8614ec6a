// Be told of decisions: register a webhook, receive its messages, and believe only those that it signed.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { createWebhook, testWebhook } from './client';
import { run } from './connection';

const MOST_BYTES = 64 * 1024;
const TOLERANCE_SECONDS = 300;
const bytes = (text: string) => new TextEncoder().encode(text);
const fromBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

// The message, if it is signed as Standard Webhooks 1.0 say; libraries for it do the same.
function verified(secret: string, headers: Record<string, string | undefined>, body: Uint8Array) {
    const { 'webhook-id': id = '', 'webhook-timestamp': sentAt = '', 'webhook-signature': given = '' } = headers;
    if (!/^\d{1,12}$/.test(sentAt) || Math.abs(Date.now() / 1000 - Number(sentAt)) > TOLERANCE_SECONDS) return undefined;
    const start = bytes(`${id}.${sentAt}.`);
    const signed = new Uint8Array(start.length + body.length);
    signed.set(start);
    signed.set(body, start.length);
    const digest = createHmac('sha256', fromBase64(secret.replace('whsec_', ''))).update(signed).digest();
    const wanted = bytes(`v1,${btoa(String.fromCharCode(...digest))}`);
    const holds = given.split(' ').map(bytes).some((one) => one.length === wanted.length && timingSafeEqual(one, wanted));
    return holds ? (JSON.parse(new TextDecoder().decode(body)) as { type: string; data: unknown }) : undefined;
}

async function read(request: AsyncIterable<Uint8Array>) {
    let body = new Uint8Array();
    for await (const part of request) {
        if (body.length + part.length > MOST_BYTES) return undefined;
        const longer = new Uint8Array(body.length + part.length);
        longer.set(body);
        longer.set(part, body.length);
        body = longer;
    }
    return body;
}

run(async () => {
    let secret = '';
    const server = createServer(async (request, response) => {
        const body = await read(request);
        const message = body && verified(secret, request.headers, body);
        response.writeHead(message ? 204 : 403).end(); // at once: a message comes again, with the same id, until then
        if (!message) return;
        console.log(`${message.type}: ${JSON.stringify(message.data)}`);
        server.close();
    });
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
    const url = process.env.WEBHOOK_URL ?? `http://127.0.0.1:${server.address().port}/ironlaw`;
    const body = { url, event_types: ['approval.approved' as const], description: 'Orders of the capacity team' };
    const { data: issued } = await createWebhook({ body, throwOnError: true });
    secret = issued.secret ?? '';
    await testWebhook({ path: { id: issued.webhook.id }, throwOnError: true });
});
