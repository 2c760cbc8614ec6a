// Set what was billed beside what was quoted: import a bill in the columns of FOCUS, and read the ratio.
import { readFileSync } from 'node:fs';
import { getQuoteActuals, importActuals } from './client';
import type { ActualsImportRequest } from './client';
import { money, run } from './connection';

run(async () => {
    const [bill, id] = process.argv.slice(2);
    if (!bill || !id) throw new Error('give a bill and the id of a quote');
    const body: ActualsImportRequest = { source: 'typescript', content: readFileSync(bill, 'utf8'), note: 'Monthly bill' };
    const seen = await importActuals({ body, query: { validate_only: true }, throwOnError: true });
    for (const note of seen.data.notes) console.log(`${note.row_count} rows: ${note.detail}`);
    const { data: imported } = await importActuals({ body, throwOnError: true });
    console.log(`${imported.matched_row_count} of ${imported.row_count} rows belong to a quote or a cost centre`);
    const { data: actuals } = await getQuoteActuals({ path: { id }, throwOnError: true });
    console.log(`quoted ${money(actuals.total)}, billed ${money(actuals.billed)}`);
    for (const service of actuals.services) {
        console.log(`${service.service_category ?? 'other'}: ${money(service.billed)}`);
    }
    if (actuals.ratio === undefined) throw new Error(actuals.gaps.map((gap) => gap.detail).join('\n'));
    console.log(`ratio ${actuals.ratio.toFixed(3)}, within the interval: ${actuals.is_within_interval}`);
});
