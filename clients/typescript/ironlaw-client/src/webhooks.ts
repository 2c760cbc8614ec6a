// Messages of webhooks, signed as Standard Webhooks 1.0 say.
import { InvalidSignature } from './errors.js';
import type { WebhookMessage } from './types.js';

const HMAC = { name: 'HMAC', hash: 'SHA-256' };

/**
 * The message, if the secret signed it and it is not older than the tolerance. The body is the bytes as they were
 * received. A message may arrive again, with the same `webhook-id`.
 */
export async function verifyWebhook(
    secret: string,
    headers: Headers | Record<string, string | string[] | undefined>,
    body: Uint8Array,
    options: { tolerance_seconds?: number } = {},
): Promise<WebhookMessage> {
    const given = (name: string) => String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '');
    const sentAt = given('webhook-timestamp');
    const age = Math.abs(Date.now() / 1000 - Number(sentAt));
    if (!/^\d+$/.test(sentAt) || age > (options.tolerance_seconds ?? 300)) {
        throw new InvalidSignature('the time of the message is missing or too far from now');
    }
    const key = await crypto.subtle.importKey('raw', fromBase64(secret.replace(/^whsec_/, '')), HMAC, false, ['verify']);
    const start = new TextEncoder().encode(`${given('webhook-id')}.${sentAt}.`);
    const signed = new Uint8Array(start.length + body.length);
    signed.set(start);
    signed.set(body, start.length);
    for (const each of given('webhook-signature').split(' ')) {
        const [version, signature = ''] = each.split(',');
        if (version === 'v1' && isBase64(signature) && (await crypto.subtle.verify(HMAC, key, fromBase64(signature), signed))) {
            return JSON.parse(new TextDecoder().decode(body)) as WebhookMessage;
        }
    }
    throw new InvalidSignature('no signature of the message is of the secret');
}

function isBase64(text: string): boolean {
    return /^[A-Za-z0-9+/]{43}=$/.test(text);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
