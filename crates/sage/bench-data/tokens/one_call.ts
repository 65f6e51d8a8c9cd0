import { readQuery } from "servers/sqlite";

export default await readQuery({ query: "SELECT team, channel FROM owners WHERE stage = 'tariff_rounding'" });
