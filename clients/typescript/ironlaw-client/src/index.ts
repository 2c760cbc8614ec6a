import { Transport, type Call, type Options } from './core.js';
import { Resources } from './resources.js';

/** A client of the service, whose resources are its members: `new Ironlaw({ url }).estimates.memory({...})`. */
export class Ironlaw extends Resources {
    constructor(options: Options) {
        super(new Transport(options));
    }

    /** The response to any request of the service; it is repeated where it is safe. */
    request(call: Pick<Call, 'method' | 'path' | 'query' | 'body' | 'headers'>): Promise<Response> {
        return this.transport.send(call);
    }
}

export * from './errors.js';
// The error, and not the shape of its details.
export { Problem } from './errors.js';
export { etagOf, headersOf, type Options, type Pages } from './core.js';
export type * from './types.js';
export { verifyWebhook } from './webhooks.js';
