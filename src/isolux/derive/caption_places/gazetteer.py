"""Names of places as captions use them, and the country and region each tells of.

Facts written down for ``caption_places``: one line a country, ``country; other names, demonyms,
cities``, under its region (the United Nations' regions for the Sustainable Development Goals, with
Europe apart). Where a name means several places, the one that captions mean most often is given,
which is a judgement: Korea is the South, Congo the Democratic Republic, Georgia the country and not
the state. Borders and names of states are not ours to judge: where they are disputed, a name tells
the region and no country, or stands by itself. A capital in front (``^``) asks for that spelling:
``Turkey`` is a country, ``turkey`` a bird.
"""

from __future__ import annotations

from functools import cache

PlaceTable = dict[str, tuple[str | None, str | None]]
"""A name in small letters to country and region; no country: a region only; neither: no place."""

_EUROPE = """
Albania; Albanian, Tirana
Andorra; Andorran
Austria; Austrian, Vienna, Salzburg, Innsbruck
Belarus; Belarusian, Minsk
Belgium; Belgian, Brussels, Antwerp, Bruges, Ghent, Flemish
Bosnia and Herzegovina; Bosnia, Bosnian, Sarajevo
Bulgaria; Bulgarian, Plovdiv
Croatia; Croatian, Zagreb, Dubrovnik
Czechia; Czech Republic, Czech, Prague, Brno
Denmark; Danish, Copenhagen
Estonia; Estonian, Tallinn
Finland; Finnish, Helsinki, Lapland
France; French, Paris, Marseille, Lyon, Bordeaux, Strasbourg
Germany; German, Berlin, Munich, Hamburg, ^Cologne, Frankfurt, Bavaria, Bavarian, Stuttgart
Greece; Greek, Athens, Thessaloniki, Santorini, Crete
Hungary; Hungarian, Budapest
Iceland; Icelandic, Reykjavik
Ireland; ^Irish, Dublin
Italy; Italian, ^Rome, Milan, Venice, ^Florence, Naples, Sicily, Sicilian, Turin, Tuscany
Kosovo; Kosovan, Pristina
Latvia; Latvian, Riga
Liechtenstein; Vaduz
Lithuania; Lithuanian, Vilnius
Luxembourg; Luxembourgish
Malta; Maltese, Valletta
Moldova; Moldovan, Chisinau
Monaco; Monegasque, Monte Carlo
Montenegro; Montenegrin, Podgorica
Netherlands; ^Holland, Dutch, Amsterdam, Rotterdam, The Hague
North Macedonia; Macedonia, Macedonian, Skopje
Norway; Norwegian, Oslo
Poland; ^Polish, Warsaw, Krakow, Gdansk
Portugal; Portuguese, Lisbon
Romania; Romanian, Bucharest, Transylvania
Russia; Russian Federation, Russian, Moscow, Saint Petersburg, St Petersburg, St. Petersburg,
  Siberia, Siberian
San Marino; Sammarinese
Serbia; Serbian, Belgrade
Slovakia; Slovak, Slovakian, Bratislava
Slovenia; Slovenian, Slovene, Ljubljana
Spain; ^Spanish, Spaniard, Madrid, Barcelona, Seville, ^Valencia, Catalonia, Catalan
Sweden; Swedish, Stockholm, Gothenburg
Switzerland; Swiss, Zurich, Geneva, Lucerne
Ukraine; Ukrainian, Kyiv, Kiev, Lviv, Odesa, Odessa
United Kingdom; Great Britain, Britain, British, England, ^English, Scotland, Scottish, Wales,
  Welsh, Northern Ireland, London, Edinburgh, Glasgow, Manchester, Liverpool, Belfast, Cardiff,
  U.K., ^UK
Vatican City; Vatican, Holy See
"""
_NORTH_AMERICA = """
Canada; Canadian, Toronto, Montreal, Vancouver, Ottawa, Quebec, Alberta, Ontario, British
  Columbia, Calgary
Greenland; Greenlandic, Nuuk
United States; United States of America, ^America, American, U.S., U.S.A., ^US, ^USA, New York,
  New York City, Manhattan, Brooklyn, Los Angeles, Chicago, San Francisco, Las Vegas, Seattle,
  Boston, Philadelphia, Washington DC, Washington D.C., ^Washington, Houston, Dallas, Miami,
  Atlanta, New Orleans, Detroit, Denver, San Diego, Hollywood, Honolulu, New England, Alabama,
  Alaska, Arizona, Arkansas, California, Californian, Colorado, Connecticut, Delaware, Florida,
  Hawaii, Hawaiian, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maryland,
  Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New
  Hampshire, New Jersey, New Mexico, North Carolina, North Dakota, Ohio, Oklahoma, Oregon,
  Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, Texan, Utah,
  Vermont, ^Virginia, West Virginia, Wisconsin, Wyoming, Native American, African American,
  African-American, Asian American
"""
_LATIN_AMERICA = """
Antigua and Barbuda; Antigua
Argentina; Argentinian, Argentine, Buenos Aires, Patagonia
Bahamas; Bahamian, Nassau
Barbados; Barbadian, Bridgetown
Belize; Belizean
Bolivia; Bolivian, La Paz
Brazil; Brasil, Brazilian, Rio de Janeiro, Sao Paulo, Brasilia, Salvador da Bahia
Chile; Chilean, Valparaiso, Santiago de Chile
Colombia; Colombian, Bogota, Medellin, Cartagena
Costa Rica; Costa Rican
Cuba; Cuban, Havana
Dominica; Roseau
Dominican Republic; Dominican, Santo Domingo
Ecuador; Ecuadorian, Quito, Galapagos
El Salvador; Salvadoran
Grenada; Grenadian
Guatemala; Guatemalan
Guyana; Guyanese
Haiti; Haitian, Port-au-Prince
Honduras; Honduran, Tegucigalpa
Jamaica; Jamaican
Mexico; Mexican, Mexico City, Oaxaca, Guadalajara, Tijuana, Yucatan
Nicaragua; Nicaraguan, Managua
Panama; Panamanian
Paraguay; Paraguayan, Asuncion
Peru; Peruvian, Cusco, Cuzco, Machu Picchu
Puerto Rico; Puerto Rican
Saint Kitts and Nevis; St Kitts
Saint Lucia; St Lucia, St. Lucia
Saint Vincent and the Grenadines; St Vincent
Suriname; Surinamese, Paramaribo
Trinidad and Tobago; Trinidad, Trinidadian, Tobago
Uruguay; Uruguayan, Montevideo
Venezuela; Venezuelan, Caracas
"""
_NORTH_AFRICA_WEST_ASIA = """
Algeria; Algerian, Algiers
Armenia; Armenian, Yerevan
Azerbaijan; Azerbaijani, Baku
Bahrain; Bahraini, Manama
Cyprus; Cypriot, Nicosia
Egypt; Egyptian, Cairo, ^Alexandria, Luxor, Giza
Georgia; ^Georgian, Tbilisi
Iraq; Iraqi, Baghdad, Mosul, Basra
Israel; Israeli, Tel Aviv, Haifa
^Jordan; Jordanian, Amman, ^Petra
Kuwait; Kuwaiti
Lebanon; Lebanese, Beirut
Libya; Libyan, Tripoli, Benghazi
Morocco; Moroccan, Marrakech, Marrakesh, Casablanca, Rabat
Oman; Omani, Muscat
Palestine; Palestinian, Gaza, West Bank, Ramallah
Qatar; Qatari, Doha
Saudi Arabia; Saudi, Riyadh, Mecca, Jeddah
Sudan; Sudanese, Khartoum, Darfur
Syria; Syrian, Damascus, Aleppo
Tunisia; Tunisian
^Turkey; Turkiye, ^Turkish, Istanbul, Ankara, Cappadocia, Izmir
United Arab Emirates; ^UAE, Emirati, Dubai, Abu Dhabi
Western Sahara; Sahrawi
Yemen; Yemeni, Sanaa, Aden
"""
_SUB_SAHARAN_AFRICA = """
Angola; Angolan, Luanda
Benin; Beninese, Cotonou
Botswana; Botswanan, Gaborone
Burkina Faso; Burkinabe, Ouagadougou
Burundi; Burundian, Bujumbura
Cabo Verde; Cape Verde, Cape Verdean
Cameroon; Cameroonian, Yaounde, Douala
Central African Republic; Bangui
^Chad; Chadian, N'Djamena
Comoros; Comorian
Republic of the Congo; Congo-Brazzaville, Brazzaville
Cote d'Ivoire; Ivory Coast, Ivorian, Abidjan
Democratic Republic of the Congo; Congo, DR Congo, ^DRC, Congo-Kinshasa, Congolese, Kinshasa, Goma
Djibouti; Djiboutian
Equatorial Guinea; Malabo
Eritrea; Eritrean, Asmara
Eswatini; Swaziland, Swazi
Ethiopia; Ethiopian, Addis Ababa
Gabon; Gabonese, Libreville
Gambia; Gambian, Banjul
Ghana; Ghanaian, Accra, Kumasi
^Guinea; Guinean, Conakry
Guinea-Bissau; Bissau
Kenya; Kenyan, Nairobi, Mombasa, Maasai, Masai
Lesotho; Basotho, Maseru
Liberia; Liberian, Monrovia
Madagascar; Malagasy, Antananarivo
Malawi; Malawian, Lilongwe
^Mali; Malian, Bamako, Timbuktu
Mauritania; Mauritanian, Nouakchott
Mauritius; Mauritian
Mozambique; Mozambican, Maputo
Namibia; Namibian, Windhoek
^Niger; Nigerien, Niamey
Nigeria; Nigerian, ^Lagos, Abuja
Rwanda; Rwandan, Kigali
Sao Tome and Principe; Sao Tome
Senegal; Senegalese, Dakar
Seychelles; Seychellois
Sierra Leone; Sierra Leonean, Freetown
Somalia; Somali, Mogadishu
South Africa; South African, Cape Town, Johannesburg, Soweto, Durban, Pretoria, Zulu
South Sudan; South Sudanese, Juba
Tanzania; Tanzanian, Zanzibar, Dar es Salaam, Serengeti
Togo; Togolese
Uganda; Ugandan, Kampala
Zambia; Zambian, Lusaka
Zimbabwe; Zimbabwean, Harare
"""
_CENTRAL_SOUTH_ASIA = """
Afghanistan; Afghan, Kabul, Kandahar
Bangladesh; Bangladeshi, Dhaka, Chittagong
Bhutan; Bhutanese, Thimphu
India; Indian, New Delhi, Delhi, Mumbai, Bombay, Kolkata, Calcutta, Chennai, Bangalore, Bengaluru,
  Rajasthan, Varanasi, Jaipur, Agra, Kerala, ^Goa, Punjab, Hyderabad
Iran; Iranian, Tehran, ^Persian, Isfahan
Kazakhstan; Kazakh, Almaty
Kyrgyzstan; Kyrgyz, Bishkek
Maldives; Maldivian
Nepal; Nepali, Nepalese, Kathmandu
Pakistan; Pakistani, Karachi, Lahore, Islamabad, Peshawar
Sri Lanka; Sri Lankan, Colombo, Ceylon
Tajikistan; Tajik, Dushanbe
Turkmenistan; Turkmen, Ashgabat
Uzbekistan; Uzbek, Tashkent, Samarkand, Bukhara
"""
_EAST_ASIA = """
Brunei; Bruneian
Cambodia; Cambodian, Phnom Penh, Angkor Wat, Siem Reap, Khmer
^China; People's Republic of China, Chinese, Beijing, Shanghai, Shenzhen, Guangzhou, Chengdu,
  Wuhan
Hong Kong; Hongkong, Hong Konger, Kowloon
Indonesia; Indonesian, Jakarta, ^Bali, Balinese, ^Java, Javanese, Sumatra, Yogyakarta
Japan; Japanese, Tokyo, Kyoto, Osaka, Hiroshima, Okinawa
Laos; Laotian, Vientiane, Luang Prabang
Macau; Macao
Malaysia; Malaysian, Kuala Lumpur, Penang, Borneo
Mongolia; Mongolian, Ulaanbaatar, Ulan Bator
Myanmar; Burma, Burmese, Yangon, Rangoon, Mandalay, Bagan
North Korea; North Korean, Pyongyang
Philippines; Philippine, Filipino, Filipina, Manila, Cebu
Singapore; Singaporean
South Korea; South Korean, Korea, Korean, Seoul, Busan
Taiwan; Taiwanese, Taipei
Thailand; ^Thai, Bangkok, Chiang Mai, Phuket
Timor-Leste; East Timor, Timorese, Dili
Vietnam; Viet Nam, Vietnamese, Hanoi, Ho Chi Minh City, Saigon, Hoi An
"""
_OCEANIA = """
Australia; Australian, Sydney, Melbourne, Brisbane, Perth, ^Adelaide, Canberra, Tasmania,
  Queensland
Fiji; Fijian, Suva
Kiribati; Tarawa
Marshall Islands; Marshallese
Micronesia; Micronesian
Nauru; Nauruan
New Caledonia; Noumea
New Zealand; New Zealander, ^Maori, Auckland, ^Wellington
Palau; Palauan
Papua New Guinea; Papuan, Port Moresby
Samoa; Samoan
Solomon Islands; Honiara
Tahiti; French Polynesia, Tahitian
Tonga; Tongan
Tuvalu; Tuvaluan
Vanuatu; Ni-Vanuatu
"""
COUNTRIES_BY_REGION = {
    "Europe": _EUROPE,
    "Northern America": _NORTH_AMERICA,
    "Latin America and the Caribbean": _LATIN_AMERICA,
    "Northern Africa and Western Asia": _NORTH_AFRICA_WEST_ASIA,
    "Sub-Saharan Africa": _SUB_SAHARAN_AFRICA,
    "Central and Southern Asia": _CENTRAL_SOUTH_ASIA,
    "Eastern and South-Eastern Asia": _EAST_ASIA,
    "Oceania": _OCEANIA,
}
"""Region to its countries."""

_REGION_NAMES = {
    "Europe": "Europe, European, Scandinavia, Scandinavian, Balkans",
    "Northern America": "North America, North American",
    "Latin America and the Caribbean": "Latin America, Latin American, South America, "
    "South American, Central America, Central American, Caribbean, West Indies, West Indian",
    "Northern Africa and Western Asia": "North Africa, North African, Middle East, "
    "Middle Eastern, Arabia, Arabian, Kurdistan, Kurdish, Bedouin, Jerusalem",
    "Sub-Saharan Africa": "Sub-Saharan Africa, Sub-Saharan, West Africa, West African, "
    "East Africa, East African, Central Africa, Southern Africa, Sahel",
    "Central and Southern Asia": "South Asia, South Asian, Central Asia, Central Asian, "
    "Kashmir, Kashmiri",
    "Eastern and South-Eastern Asia": "East Asia, East Asian, Southeast Asia, South East Asia, "
    "Southeast Asian, Tibet, Tibetan, Lhasa",
    "Oceania": "Oceania, Polynesia, Polynesian, Melanesia",
}
"""Names that tell a region and no country. ``Africa`` and ``Asia`` alone tell neither."""

_OTHER_MEANINGS = """
french fries, french fry, french toast, french horn, french door, french doors, french press,
french window, french windows, french bulldog, french braid, swiss cheese, swiss army knife,
german shepherd, german shepherds, danish pastry, dutch oven, dutch angle, english bulldog,
english muffin, english horn, english language, irish setter, irish coffee, belgian waffle,
belgian waffles, greek yogurt, greek salad, greek letters, italian dressing, italian sausage,
brussels sprout, brussels sprouts, russian roulette, siberian husky, persian cat, persian rug,
afghan hound, turkish delight, turkish bath, chinese takeout, chinese lantern, chinese lanterns,
china cabinet, bone china, fine china, india ink, indian ocean, american indian, american football,
american cheese, canadian bacon, canadian goose, canadian geese, mexican wave, panama hat,
panama hats, cuban heel, brazil nut, brazil nuts, hawaiian shirt, hawaiian shirts, hawaiian pizza,
guinea pig, guinea pigs, guinea fowl, chile pepper, chile peppers, japanese maple, thai basil,
welsh corgi, welsh dresser, scottish terrier, norwegian forest cat, air jordan, air jordans,
michael jordan, paris hilton, boston terrier, manila envelope, manila folder, bottle of cologne,
virginia creeper
"""
"""Words around a place's name that make it something else, which are looked for first."""


@cache
def load_place_tables() -> tuple[PlaceTable, PlaceTable]:
    """Return the names in any spelling, and those that need their capital letter."""
    any_case: PlaceTable = {}
    capitalised: PlaceTable = {}
    for region, lines in COUNTRIES_BY_REGION.items():
        for line in lines.replace("\n  ", " ").strip().splitlines():
            country, _, other_names = line.partition(";")
            for spelling in [country, *other_names.split(",")]:
                name = spelling.strip()
                table = capitalised if name.startswith("^") else any_case
                table[name.lstrip("^").rstrip(".").lower()] = (country.lstrip("^"), region)
        for name in _REGION_NAMES[region].split(","):
            any_case[name.strip().lower()] = (None, region)
    for phrase in _OTHER_MEANINGS.replace("\n", " ").split(","):
        any_case[phrase.strip()] = (None, None)
    return any_case, capitalised
