import { readQuery } from "servers/sqlite";

return await readQuery({ query: "SELECT team, channel FROM owners WHERE stage = 'tariff_rounding'" });
