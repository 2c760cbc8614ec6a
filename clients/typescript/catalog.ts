// Import a model, correct it, and find it among all the others: pages, versions, and what null says.
import { readFileSync } from 'node:fs';
import { deleteModel, importModel, listModels, updateModel } from './client';
import type { ModelImportRequest, ModelPage } from './client';
import { retried, run } from './connection';

run(async () => {
    const [file, id] = process.argv.slice(2);
    if (!file || !id) throw new Error('give the config.json of a model, and an id for it');
    const body: ModelImportRequest = {
        id,
        name: 'Ours',
        config: JSON.parse(readFileSync(file, 'utf8')) as ModelImportRequest['config'],
        sources: [{ pointers: [''], citation: 'config.json of the model card', as_of: '2026-11-20' }],
        note: 'To be checked',
    };
    const made = await importModel({ body, throwOnError: true });
    const { model } = made.data;
    console.log(`${model.parameter_count.toLocaleString('en')} parameters, note: ${model.note ?? 'none'}`);
    const ids: string[] = [];
    let token: string | null = '';
    while (token !== null) {
        const query = { page_size: 20, page_token: token };
        const page: ModelPage = (await retried(() => listModels({ query, throwOnError: true }))).data;
        ids.push(...page.items.map((row) => row.id));
        token = page.next_page_token;
    }
    console.log(`listed: ${ids.filter((one) => one === id).length} time, in pages of 20 rows`);
    // null removes the note; members that are left out stay as they are.
    const headers = { 'If-Match': made.response.headers.get('ETag') ?? '' };
    const changed = await updateModel({ path: { id }, body: { note: null }, headers, throwOnError: true });
    console.log(`version ${changed.data.version}, note: ${changed.data.note ?? 'none'}`);
    // Somebody else has changed it since: read it again, and decide again.
    const late = await updateModel({ path: { id }, body: { name: 'Theirs' }, headers });
    if (late.error) console.log(`refused: ${late.error.code}`);
    const current = { 'If-Match': changed.response.headers.get('ETag') ?? '' };
    await deleteModel({ path: { id }, headers: current, throwOnError: true });
});
