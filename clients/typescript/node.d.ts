// What the examples use of Node; not needed where @types/node is installed.
declare const process: { argv: string[]; env: Record<string, string | undefined>; exitCode?: number };

declare module 'node:fs' {
    export function readFileSync(path: string, encoding: 'utf8'): string;
    export function writeFileSync(path: string, text: string, options: { mode: number; flag: string }): void;
}

declare module 'node:crypto' {
    export function createHmac(algorithm: string, key: Uint8Array): { update(data: Uint8Array): { digest(): Uint8Array } };
    export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean;
    export function randomUUID(): string;
}

declare module 'node:http' {
    interface Request extends AsyncIterable<Uint8Array> { headers: Record<string, string | undefined> }
    interface Response { writeHead(status: number): Response; end(): void }
    interface Server { listen(port: number, host: string, ready: () => void): void; address(): { port: number }; close(): void }
    export function createServer(answer: (request: Request, response: Response) => void): Server;
}
