// What all examples share: the service of the environment, and problems that end a program.
import { client } from './client/client.gen';
import type { MoneyAmount, MoneyQuantity, Problem } from './client';

export function connect() {
    const key = process.env.IRONLAW_API_KEY;
    client.setConfig({ baseUrl: process.env.IRONLAW_URL ?? 'http://127.0.0.1:8000', auth: key });
}

// Of a call with throwOnError, what is thrown is the problem of the service.
export function run(main: () => Promise<void>) {
    connect();
    main().catch((problem: Problem | Error) => {
        const fields = 'errors' in problem ? problem.errors.map((field) => `\n  ${field.pointer}: ${field.detail}`) : [];
        const said = 'code' in problem ? `${problem.code}: ${problem.detail}` : String(problem);
        console.error(said + fields.join(''));
        process.exitCode = 1;
    });
}

export const wait = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));

// The answer of a call that may be made again, because it only reads or has an Idempotency-Key. It is made again
// where no answer came, and where the service is busy.
export async function retried<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    for (const pause of [500, 1000, 2000, 4000]) {
        try {
            return await call();
        } catch (problem) {
            const { status } = problem as Partial<Problem>;
            if (!(problem instanceof TypeError) && status !== 429 && status !== 503) throw problem;
        }
        await wait(pause);
    }
    return call();
}

export function money(amount: MoneyAmount | MoneyQuantity | undefined) {
    return amount ? `${amount.amount} ${amount.currency_code}` : 'not known';
}
